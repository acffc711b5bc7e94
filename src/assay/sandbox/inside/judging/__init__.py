"""How a program is judged; pure, wherever it runs."""
