"""What happened: requests, examples, versions, tasks, events, money; statistics over them. Knows no other app."""
