"""What is said to the server: key names, scripts, requests as values, and what replies mean. Pure."""
