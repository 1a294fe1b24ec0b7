"""Figures and pages from result files: nothing is computed here that is not in the files."""

from hopbound.report.hierarchy import REPORT_FILES, write_report

__all__ = ["REPORT_FILES", "write_report"]
