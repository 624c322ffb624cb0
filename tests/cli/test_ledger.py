"""`discreet ledger` shows, checks and exports a real record, and refuses one that cannot be trusted."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from test_app import run

import discreet as dp
from discreet.cli import ledger_command
from discreet.cli.app import exit_code
from discreet.errors import LedgerDamaged, LedgerUnavailable
from discreet.ledger import Entry, Ledger
