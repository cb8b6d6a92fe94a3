#ifndef SHIM_VERSION_H
#define SHIM_VERSION_H
#define ZCSHIM_VERSION "0.1.0"
#endif
