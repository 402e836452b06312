import sys, time
sys.path.insert(0,'.')
from benchmarks import gate as g
t=time.process_time()
g._simulate(int(sys.argv[1]))
print(time.process_time()-t)
