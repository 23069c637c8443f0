from .database_page import database_report as database_report
