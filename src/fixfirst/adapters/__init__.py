"""What others meet us by: Gymnasium, agents of their own, ONNX and NumPy files, Ray."""
