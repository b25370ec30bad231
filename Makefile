# SPDX-License-Identifier: Apache-2.0

LAB := kernel/lab/lab
CHECK := "$$(kernel/lab/venv)/bin/python" .ci/check

.PHONY: help demo test test-lines lint kernels packages clean

help:
	@echo 'make demo [TRACE=FILE]  compare DRWA with its peers on a cellular link: out/demo.html'
	@echo 'make test               linters, patch checks and all tests'
	@echo 'make test-lines         the series on the other kernel lines, 5.10 and the newest'
	@echo 'make lint               linters alone'
	@echo 'make kernels            build the guest kernels that the tests boot'
	@echo 'make clean              remove out/'

demo: packages
	@$(LAB) kernel build --kernel 6.12 --flavour drwa
	@$(LAB) demo $(if $(TRACE),--trace '$(TRACE)')

test: kernels
	@kernel/lab/packages clang libclang-rt-dev valgrind
	@$(CHECK)

test-lines: packages
	@$(LAB) kernel build --kernel 5.10 --flavour drwa
	@$(LAB) kernel build --kernel 5.10 --flavour base
	@$(LAB) kernel build --kernel 7.3 --flavour drwa
	@$(LAB) kernel build --kernel 7.3 --flavour base
	@$(CHECK) --lines

lint: packages
	@$(CHECK) --lint

kernels: packages
	@$(LAB) kernel build --kernel 6.12 --flavour all
	@$(LAB) kernel build --kernel 6.1 --flavour all

packages:
	@kernel/lab/packages

clean:
	rm -rf out
