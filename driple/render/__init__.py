"""How results become text for people; nothing here works out a number."""
