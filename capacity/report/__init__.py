"""Pages to send to a colleague: one HTML file each, about facts, a sweep, or a pretrained model.

A page is a single file: its style, script and pictures are in it, and it loads nothing. It is read
on a telephone and on paper, in light and in dark, by mouse and by keyboard. Every number comes from
the function of this library that a user would call for it (extra ``report``).

=====================  ============================================================================
`report`               a page about facts or a sweep; ``capacity.report(source)`` calls it
`database_report`      how large a database is, what carries that, and what would hold it
`sweep_report`         accuracies, a law and its band, failures and provenance of many runs
`recall_report`        facts that a language model knows, by predicate, template and fact
`attention_report`     standard beside effective attention of a model on a text, head by head
=====================  ============================================================================
"""

from capacity.optional import lazy_names, make_callable

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
make_callable(__name__, "capacity.report.any_page:report")
