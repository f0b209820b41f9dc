"""The learner: two small networks, PPO, and everything between a setting and a policy file."""
