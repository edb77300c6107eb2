# SPDX-License-Identifier: MIT
"""flexsc report: each figure and table of the papers beside our own numbers, on one
page.

    figure      what a figure is made of, its state, rows and verdicts
    runs        the files of measurements that a report is made of
    osdi, costs, atc, geneves, send
                the figures of each paper; figures has all, in the index's order
    measure     measures what is missing
    draw        drawings, if matplotlib is there
    page        HTML
    record      report.json
"""
