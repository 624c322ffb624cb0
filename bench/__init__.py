"""The benchmarks, in a folder for each page of docs/benchmarks: `python -m bench.noise.samplers` runs one.

The working directory is the root of the checkout. What is beside the folders makes the pages, runs the peers and prints
sections. Nothing is imported here, because the environments of peers run benchmarks too, and do not have discreet.
"""
