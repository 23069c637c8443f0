from .any_page import report as report
from .attention_page import attention_report as attention_report
from .database_page import database_report as database_report
from .recall_page import recall_report as recall_report
from .sweep_page import sweep_report as sweep_report
