"""RECORD: a running job -> a folder of samples and marks -> traces, period, labels."""
