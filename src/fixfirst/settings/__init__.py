"""What a user can set: trainings, searches, leagues, presets, and where each value comes from."""
