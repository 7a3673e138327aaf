"""Settings by name, and the machines, devices and links behind them."""
