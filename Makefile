# Everything runs in an environment that is made here, from Python 3.11 or later and make alone.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
TYPED = $(VENV)/.typed
NEWEST ?= 3.13
LOWEST_JAX = $(shell sed -n 's/.*"jax>=\([0-9.]*\).*/\1/p' pyproject.toml)
SAMPLES ?= 2000
PYTEST = $(BIN)/python -m pytest -n $(or $(JOBS),2) --dist worksteal
unexport PYTHONDONTWRITEBYTECODE  # a process that compiles all sources again starts in twice the time

.PHONY: demo gallery test test-slow test-share test-newest test-gpu test-robots test-hosts test-faults test-release docs screenshots dist bench bench-quick bench-gpu format clean

demo: $(STAMP)  ## the main job on a real example: a separation study with its report
	rm -rf runs/demo
	$(BIN)/jaxmbs study examples/stage_separation.toml -n $(SAMPLES) --out runs/demo
	$(BIN)/jaxmbs report runs/demo

test: $(STAMP) $(TYPED)  ## lint, types where the package has changed, and the default test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYTEST) -m "not optimised"
	$(PYTEST) -m optimised

$(TYPED): $(STAMP) pyproject.toml $(shell find jaxmbs -name '*.py')
	$(BIN)/pyright --pythonpath $(BIN)/python
	touch $(TYPED)

test-slow: $(STAMP)  ## the longer runs that the default leaves out
	$(BIN)/python -m pip install -q -e '.[test,buckets,nastran,usd]'
	$(PYTEST) --slow -m "slow and not optimised" $(TESTS)

test-share: $(STAMP)  ## one in SHARE of the default tests, and the slow ones of these, compiled as for a user
	$(PYTEST) --slow -m "optimised or not slow" --share $(or $(SHARE),16) $(TESTS)

test-newest: $(STAMP)  ## the default tests on a newer Python (NEWEST; this one if that cannot be had), with the newest of everything that PyPI serves for it
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv venv -q --clear --python $(NEWEST) $(VENV)-newest || $(BIN)/uv venv -q --clear --python $(BIN)/python $(VENV)-newest
	$(BIN)/uv pip install -q --python $(VENV)-newest/bin/python -e '.[test]'
	$(VENV)-newest/bin/python -m pytest -n $(or $(JOBS),2) --dist worksteal -m "not optimised" $(TESTS)
	$(VENV)-newest/bin/python -m pytest -n $(or $(JOBS),2) --dist worksteal -m optimised $(TESTS)
	@$(VENV)-newest/bin/python -c 'import platform, jax; print("on Python", platform.python_version(), "with JAX", jax.__version__)'

test-gpu: $(STAMP)  ## kernels compiled for GPUs that need not be there, by XLA and by NVIDIA's assembler, on the lowest JAX and on the newest (with CUDA's wheels, 5 GB)
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv venv -q --clear --python $(BIN)/python $(VENV)-gpu
	$(BIN)/uv pip install -q --python $(VENV)-gpu/bin/python -e '.[test,gpu-check]' 'jax==$(LOWEST_JAX)'
	JAX_PLATFORMS=cpu $(VENV)-gpu/bin/python -m pytest --slow tests/batching/gpu
	$(BIN)/uv venv -q --clear --python $(NEWEST) $(VENV)-gpu-newest || $(BIN)/uv venv -q --clear --python $(BIN)/python $(VENV)-gpu-newest
	$(BIN)/uv pip install -q --python $(VENV)-gpu-newest/bin/python -e '.[test,gpu-check]'
	JAX_PLATFORMS=cpu $(VENV)-gpu-newest/bin/python -m pytest --slow tests/batching/gpu -k "not grown"
	@for own in gpu gpu-newest; do $(VENV)-$$own/bin/python -c 'import platform, jax; print("on Python", platform.python_version(), "with JAX", jax.__version__)'; done

test-robots: $(STAMP)  ## a public collection of robots against Pinocchio, 130 MB to download; writes its table
	$(BIN)/python -m pip install -q -e '.[robots]'
	$(PYTEST) --slow tests/io/test_robots.py
	$(BIN)/python -m tests.io.robots

test-hosts: $(STAMP)  ## the tests that compute, as on other processors, locales, folders and limits (HOSTS="...", FILES="...")
	$(BIN)/python -m tests.hosts.run -j $(or $(JOBS),2) --hosts $(HOSTS) --files $(FILES)

test-faults: $(STAMP)  ## whether the tests notice the seeded faults, ten minutes to half an hour
	$(BIN)/python -m tests.faults.run -j $(or $(JOBS),2) $(FAULTS)

test-release: $(STAMP)  ## all the tests above, some two and a half hours; writes tests/release.md (STAGES="slow robots" for some)
	$(BIN)/python -m tests.release $(STAGES)

gallery: $(STAMP)  ## pictures of the example files, where what they show has changed
	JAX_ENABLE_X64=1 $(BIN)/python -m docs.gallery

docs: $(STAMP)  ## the manual as a site, build/manual/site/index.html
	$(BIN)/python -m pip install -q -e '.[docs]'
	$(BIN)/python -m docs

screenshots: $(STAMP)  ## a report and a moving page as a browser shows them, at three widths, light and dark, in build/screenshots (Qt's browser, 550 MB)
	$(BIN)/python -m venv $(VENV)-browser
	$(VENV)-browser/bin/python -m pip install -q PyQt6-WebEngine
	rm -rf build/screenshots && mkdir -p build/screenshots
	$(BIN)/jaxmbs study examples/stage_separation.toml -n 256 --out build/screenshots/run
	$(BIN)/jaxmbs report build/screenshots/run
	$(BIN)/jaxmbs simulate examples/stage_separation.toml --animate build/screenshots/motion.html --out build/screenshots/motion.csv
	$(VENV)-browser/bin/python tests/view/screenshots.py build/screenshots/run/report.html build/screenshots/motion.html build/screenshots

dist: $(STAMP)  ## source archive and wheel in dist/, installed and used from an empty folder
	$(BIN)/python -m pip install -q build twine
	$(BIN)/python -m tests.distribution

bench-quick: $(STAMP)  ## speed beside the peers that are installed, three minutes
	$(BIN)/jaxmbs bench --quick

bench: $(STAMP)  ## speed beside all peers, kept as this machine's baseline and drawn
	$(BIN)/python -m pip install -q -e '.[bench]'
	$(BIN)/jaxmbs bench --keep
	$(BIN)/python -m benchmarks.plots
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.series

bench-gpu: $(STAMP)  ## the same on a GPU (JAX with CUDA is installed first), after a comparison of bits with emulated kernels
	$(BIN)/python -m pip install -q -e '.[bench,test]' 'jax[cuda13]' mujoco-warp
	$(BIN)/python -m benchmarks.on_gpu
	$(BIN)/python -m benchmarks.beside_mjx
	$(BIN)/jaxmbs bench --keep
	$(BIN)/python -m benchmarks.plots

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q -e '.[test]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) $(VENV)-newest $(VENV)-gpu $(VENV)-gpu-newest $(VENV)-browser runs build
