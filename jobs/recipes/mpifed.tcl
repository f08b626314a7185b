#%Module1.0
# mpifed as a module, for Environment Modules and Lmod. Install it once, with the modules that it is to use loaded:
#
#   python -m venv /opt/apps/mpifed/0.1.0 && /opt/apps/mpifed/0.1.0/bin/pip install "mpifed[plot] @ file:///path/of/a/clone"
#   cp jobs/recipes/mpifed.tcl /opt/modulefiles/mpifed/0.1.0     # then change the three lines below
#
# Tried: tclsh runs it with the commands of modules played by a test. Not tried: Environment Modules and Lmod themselves.
set root /opt/apps/mpifed/0.1.0
set data /opt/data/mpifed
set needs {python openmpi}

module-whatis "mpifed 0.1.0: federated optimisation over MPI"
conflict mpifed
foreach name $needs { prereq $name }
setenv VIRTUAL_ENV $root
setenv VENV ""
setenv MPIFED_DATA $data
prepend-path PATH $root/bin
