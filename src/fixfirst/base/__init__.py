"""What all rooms need and none owns: errors, checks, files, locks, machine code, statistics, jobs."""
