"""What orders earned and what follows: intervals, prices, rankings, answers, agreement between networks."""
