# The zcshim command, its man pages and completions, installation and the Debian package.
CLI_SOURCES := $(wildcard cli/*.c)
CLI_OBJS    := $(CLI_SOURCES:%.c=$(BUILD)/obj/%.o) $(addprefix $(BUILD)/obj/shim/,emitter.o text.o arena.o report_model.o \
  report_text.o report_advice.o report_text_leaks.o report_text_site.o report_words.o report_json.o report_alike.o report_suppress.o) $(addprefix $(BUILD)/obj/policy/,options.o text.o cost.o)
CLI         := $(BUILD)/zcshim
CLI_DIR     := $(BUILD)/cli
CLI_MADE    := $(addprefix $(CLI_DIR)/,zcshim.1 libzcshim.7 zcshim.bash _zcshim)
VERSION     := $(shell sed -n 's/.*ZCSHIM_VERSION "\(.*\)"/\1/p' shim/version.h)

$(BUILD)/obj/cli/html.o: cli/report.html

$(CLI): $(CLI_OBJS)
	$(CC) $(CFLAGS) $^ -ldl -o $@

# HOST_CLI prints the tables when the command itself is built for another machine.
HOST_CLI ?= $(CLI)
$(CLI_DIR)/%: docs/%.in $(CLI)
	@mkdir -p $(@D)
	$(HOST_CLI) --print man-commands >$@.commands
	$(HOST_CLI) --print man-settings >$@.settings
	sed -e 's/@VERSION@/$(VERSION)/' -e '/@COMMANDS@/{r $@.commands' -e 'd}' -e '/@SETTINGS@/{r $@.settings' -e 'd}' $< >$@
	rm $@.commands $@.settings
$(CLI_DIR)/zcshim.bash: $(CLI)
	@mkdir -p $(@D)
	$(HOST_CLI) --print bash >$@
$(CLI_DIR)/_zcshim: $(CLI)
	@mkdir -p $(@D)
	$(HOST_CLI) --print zsh >$@

ALL += $(CLI) $(CLI_MADE)

PREFIX  ?= /usr/local
DESTDIR ?=
INSTALL := install

# FILE:FOLDER:MODE, all that make install puts in place and make uninstall takes away.
INSTALLED := $(CLI):bin:755 $(BUILD)/libzcshim.so:lib/zcshim:755 $(CLI_DIR)/zcshim.1:share/man/man1:644 \
  $(CLI_DIR)/libzcshim.7:share/man/man7:644 $(CLI_DIR)/zcshim.bash:share/bash-completion/completions:644 \
  $(CLI_DIR)/_zcshim:share/zsh/site-functions:644 docs/report-schema.json:share/doc/zcshim:644 LICENSE:share/doc/zcshim:644

.PHONY: install uninstall deb check-install check-cli
install: $(CLI) $(CLI_MADE) $(BUILD)/libzcshim.so
	@set -e; for each in $(INSTALLED); do \
	  file=$${each%%:*}; rest=$${each#*:}; folder=$(DESTDIR)$(PREFIX)/$${rest%:*}; \
	  $(INSTALL) -d "$$folder"; $(INSTALL) -m $${rest#*:} "$$file" "$$folder/"; done
	mv $(DESTDIR)$(PREFIX)/share/bash-completion/completions/zcshim.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/zcshim
	@echo "installed in $(DESTDIR)$(PREFIX): zcshim doctor tells whether it will work here"

uninstall:
	@for each in $(INSTALLED); do \
	  file=$${each%%:*}; rest=$${each#*:}; rm -f "$(DESTDIR)$(PREFIX)/$${rest%:*}/$${file##*/}"; done
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/zcshim
	@for folder in lib/zcshim share/doc/zcshim; do rmdir "$(DESTDIR)$(PREFIX)/$$folder" 2>/dev/null || true; done

DEB_ARCH ?= $(shell dpkg --print-architecture 2>/dev/null)
DEB      := $(BUILD)/zcshim_$(VERSION)_$(DEB_ARCH).deb
deb: $(CLI) $(CLI_MADE) $(BUILD)/libzcshim.so
	rm -rf $(BUILD)/deb
	$(MAKE) --no-print-directory install DESTDIR=$(BUILD)/deb PREFIX=/usr
	gzip -9n $(BUILD)/deb/usr/share/man/man?/*
	mv $(BUILD)/deb/usr/share/zsh/site-functions $(BUILD)/deb/usr/share/zsh/vendor-completions
	mv $(BUILD)/deb/usr/share/doc/zcshim/LICENSE $(BUILD)/deb/usr/share/doc/zcshim/copyright
	mkdir -p $(BUILD)/deb/DEBIAN
	sed -e 's/@VERSION@/$(VERSION)/' -e 's/@ARCH@/$(DEB_ARCH)/' cli/debian-control.in >$(BUILD)/deb/DEBIAN/control
	dpkg-deb --root-owner-group --build $(BUILD)/deb $(DEB)

check-cli: $(CLI) $(CLI_MADE) $(REPORT_PROGRAMS)
	timeout 300 $(PYTHON) tests/report/check_cli.py $(BUILD)
check-install: $(CLI) $(CLI_MADE) $(BUILD)/libzcshim.so
	timeout 300 sh tests/report/check_install.sh $(BUILD)
CHECKS += check-cli check-install
