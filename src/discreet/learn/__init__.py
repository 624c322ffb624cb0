"""Private learning: estimators with the interface of scikit-learn, where each fit is one release."""

from discreet.learn.binned.additive import AdditiveClassifier, AdditiveRegressor
from discreet.learn.binned.bins import Bins
from discreet.learn.binned.boosting import BoostedTreesClassifier, BoostedTreesRegressor
from discreet.learn.binned.forest import RandomForestClassifier, RandomForestRegressor
from discreet.learn.checks import expected_failed_checks
from discreet.learn.classification import LinearSVC, LogisticRegression
from discreet.learn.features import FeatureClassifier, Scattering
from discreet.learn.linear import LinearRegression, Ridge
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.plots import plot_accuracy, plot_learning_curve
from discreet.learn.preprocessing import OneHot, RangeScaler, StandardScaler
from discreet.learn.regression import HuberRegressor, PoissonRegressor, QuantileRegressor
from discreet.learn.search import PrivateSearch
from discreet.learn.structure.clustering import KMeans
from discreet.learn.structure.decomposition import PCA
from discreet.learn.structure.mixture import GaussianMixture
from discreet.mechanisms.learning.descent.descent import Descent
from discreet.mechanisms.learning.descent.plain import enough_steps, plain_descent
from discreet.rows.convex import Affine, Box, Projection, Simplex, WithinRadius

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "Affine",
    "Bins",
    "BoostedTreesClassifier",
    "BoostedTreesRegressor",
    "Box",
    "Descent",
    "FeatureClassifier",
    "GaussianMixture",
    "GaussianNB",
    "HuberRegressor",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "OneHot",
    "PoissonRegressor",
    "PrivateSearch",
    "Projection",
    "QuantileRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RangeScaler",
    "Ridge",
    "Scattering",
    "Simplex",
    "StandardScaler",
    "WithinRadius",
    "enough_steps",
    "expected_failed_checks",
    "plain_descent",
    "plot_accuracy",
    "plot_learning_curve",
]
