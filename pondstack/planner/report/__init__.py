"""Answers for people and programs: a summary on one screen, JSON, and a page of HTML."""
