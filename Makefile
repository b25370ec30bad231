# SPDX-License-Identifier: Apache-2.0

LAB := kernel/lab/lab
# With Maven go the tests of the Java, too.
LINTERS := blueprint-tools clang-format golang-go maven openjdk-17-jdk-headless shellcheck
CHECK := "$$(kernel/lab/venv)/bin/python" .ci/check
# What netd_patches/ is built and tested with
NETD_PACKAGES := android-libbase-dev libc++-dev libc++abi-dev libfmt-dev libgmock-dev libgtest-dev libjsoncpp-dev

# What the tests run, beside the linters
TESTED_WITH := aapt android-framework-res checkpolicy chromium chromium-driver clang golang-github-google-blueprint-dev kati kmod \
	libbpf-dev libclang-rt-dev m4 ngtcp2-client ngtcp2-server rustc secilc setools valgrind $(NETD_PACKAGES)

.PHONY: help demo report e2e test test-all test-lines test-arch mutate lint kernels other-kernels ready packages source venv clean

help:
	@echo 'make demo [TRACE=FILE]  compare DRWA with its peers on a cellular link: out/demo.html'
	@echo 'make report [TRACES=FOLDER] [FULL=1]  gains, costs, peers, papers'"'"' figures: out/report.html'
	@echo 'make e2e                the whole chain, from a carrier'"'"'s XML to packets: out/e2e.html'
	@echo 'make test               linters, patch checks and all tests'
	@echo 'make test-all           also the host side, all kernel lines, the debug kernel, Android 14 to 17'
	@echo 'make test-lines         the tests of the other kernel lines alone, and of the debug kernel'
	@echo 'make test-arch          the selftests on emulated machines of two CPUs, x86-64 and arm64, and on Debian'"'"'s own kernels'
	@echo 'make mutate             breaks the product in many ways, and tells which test notices; an hour or two'
	@echo 'make lint               linters, and whether what is generated is up to date'
	@echo 'make kernels            build the guest kernels that the tests boot'
	@echo 'make clean              remove out/'

demo: ready
	@$(LAB) kernel build --kernel 6.12 --flavour drwa
	@$(LAB) demo $(if $(TRACE),--trace '$(TRACE)')

report: ready
	@kernel/lab/packages clang kmod libbpf-dev
	@for flavour in base drwa bpf module; do $(LAB) kernel build --kernel 6.12 --flavour $$flavour || exit; done
	@$(LAB) evidence $(if $(TRACES),--traces '$(TRACES)') $(if $(FULL),--full)

e2e: ready
	@kernel/lab/packages clang maven openjdk-17-jdk-headless $(NETD_PACKAGES)
	@$(LAB) kernel build --kernel 6.12 --flavour drwa
	@"$$(kernel/lab/venv)/bin/python" cts_tests/e2e/e2e

test: kernels
	@kernel/lab/packages $(LINTERS) $(TESTED_WITH)
	@$(CHECK)

# npm, for axe-core, has hundreds of packages; others' Node.js brings its own, and conflicts.
test-all: kernels other-kernels
	@kernel/lab/packages $(LINTERS) $(TESTED_WITH) lld llvm $(if $(shell command -v npm),,npm)
	@$(CHECK) --all

test-lines: other-kernels
	@kernel/lab/packages $(TESTED_WITH)
	@$(CHECK) --lines

test-arch: packages
	@kernel/lab/packages cpio gcc-aarch64-linux-gnu libc6-dev-arm64-cross libelf-dev qemu-system-arm \
		qemu-system-x86 sparse
	@$(LAB) machine --kernel 6.12 smp kcsan arm64 arm64-module debian
	@$(LAB) machine --kernel 6.1 arm64 debian
	@$(LAB) machine --kernel 5.10 debian
	@$(LAB) machine --kernel 7.3 debian

mutate: packages
	@kernel/lab/packages $(LINTERS) $(TESTED_WITH)
	@cts_tests/mutate

lint: packages
	@kernel/lab/packages $(LINTERS)
	@$(CHECK) --lint

kernels: ready
	@$(LAB) kernel build --kernel 6.12 --flavour base
	@$(LAB) kernel build --kernel 6.12 --flavour drwa

other-kernels: packages
	@for kernel in '6.12 debug' '6.12 bpf' '6.12 module' '6.12 module-debug' '6.12 vendor' \
			'6.1 base' '6.1 drwa' '6.1 bpf' '6.1 debug' '6.1 module' \
			'5.10 base' '5.10 drwa' '5.10 bpf' '7.3 base' '7.3 drwa' '7.3 bpf'; do \
		$(LAB) kernel build --kernel $${kernel% *} --flavour $${kernel#* } || exit; \
	done

# The kernel's source is fetched and unpacked while pip installs.
ready: packages
	@$(MAKE) --no-print-directory --jobs=2 source venv

packages:
	@kernel/lab/packages

source:
	@kernel/lab/source 6.12

venv:
	@kernel/lab/venv --lab >/dev/null

clean:
	rm -rf out
