"""What one worker does in a step: the plan that every scheme carries out."""
