"""Driple for assistants: four tools over the same results, and a skill that says when to ask what.

answers: the tools as plain functions    server: the same over the Model Context Protocol, on stdio
"""
