"""What is asked: metric spaces, queries over them, and how much one unit can change an answer."""

from discreet.queries.counts import Count, CountingQuery, Histogram
from discreet.queries.domain import Domain
from discreet.queries.numeric import Mean, Sum, VectorSum
from discreet.queries.query import Query
from discreet.queries.scores import MedianScore, Popularity, QuantileScore, Ratings, Scores
from discreet.queries.sensitivity import Norm, Sensitivity, nearest_step, sensitivity_of
from discreet.queries.space import (
    Ball,
    Categories,
    FiniteSpace,
    Functions,
    Grid,
    Integers,
    Interval,
    Product,
    Space,
)
from discreet.queries.workload import Workload

__all__ = [
    "Ball",
    "Categories",
    "Count",
    "CountingQuery",
    "Domain",
    "FiniteSpace",
    "Functions",
    "Grid",
    "Histogram",
    "Integers",
    "Interval",
    "Mean",
    "MedianScore",
    "Norm",
    "Popularity",
    "Product",
    "QuantileScore",
    "Query",
    "Ratings",
    "Scores",
    "Sensitivity",
    "Space",
    "Sum",
    "VectorSum",
    "Workload",
    "nearest_step",
    "sensitivity_of",
]
