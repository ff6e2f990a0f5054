"""The engine, pure: values in, values out. Clock, randomness, files and sockets are handed in."""
