"""Communication schemes: parameter servers, rings, and the links that they share."""
