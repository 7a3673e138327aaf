"""Programs that measure, and makers of the tables of what they measured."""
