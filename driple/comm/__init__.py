"""How workers exchange gradients and parameters: servers, rings, and the links they share."""
