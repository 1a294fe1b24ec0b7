"""How many dependent look-ups can a stack of attention and recurrent layers make in one forward pass?"""

__version__ = "0.1.0"
