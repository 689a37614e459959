import sys,time,json; sys.path.insert(0,'src')
import numpy as np, torch
torch.set_num_threads(int(sys.argv[4]) if len(sys.argv)>4 else 1)
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.subjects import held_out
from oscar_causal.density.checkpoint import load_model
from oscar_causal.discovery.oneshot import *
from oscar_causal.score.matching import *
ds=read_dataset(sys.argv[1]); m=load_model(sys.argv[2]); n=int(sys.argv[3])
out=np.flatnonzero(held_out(ds.subject_ids,.1,seed=0))
out=[i for i in out if len(ds.labels[i])][:n]
def go(cfg,accept=None):
    t=time.time(); bs=[b for l in discover(m,ds,cfg,indices=out) for b in l]; dt=time.time()-t
    return bs,dt
def sc(bs,acc):
    found={(b.sequence_id,b.label):frozenset(e.event for e in b.evidence if acc(b,e)) for b in bs}
    tr=truth_of(ds,found)["why"]
    s=summarise(match(found,tr)); return s
def show(name,s,dt): print(f"{name}: sample F1 {100*s['sample']['f1_of_means']:.1f} (P {100*s['sample']['precision']:.1f} R {100*s['sample']['recall']:.1f}) micro {100*s['micro']['f1']:.1f} macro {100*s['macro']['f1']:.1f} pairs {s['pairs']} {dt:.0f}s",flush=True)
if __name__=="__main__":
    bs,dt=go(DiscoveryConfig("prefix")); show("prefix",sc(bs,lambda b,e:e.accepted),dt)
    for N in (64,128,256):
        bs,dt=go(DiscoveryConfig(intervention=InterventionConfig(contexts=N))); 
        show(f"N{N}",sc(bs,lambda b,e:e.accepted),dt)
        show(f"N{N} cause only",sc(bs,lambda b,e:e.verdict=="cause"),dt)
        for a in (.1,.2): show(f"  q<{a} d.1",sc(bs,lambda b,e:e.q_value is not None and e.q_value<=a and (e.indicator or 0)>=.1),dt)
        for d in (.2,.3): show(f"  q<.05 d{d}",sc(bs,lambda b,e:e.q_value is not None and e.q_value<=.05 and (e.indicator or 0)>=d),dt)
        for d in (.2,.3): show(f"  ind>{d}",sc(bs,lambda b,e:e.indicator is not None and e.indicator>=d),dt)
        for d in (.2,.3): show(f"  q<.2 ind>{d}",sc(bs,lambda b,e:e.q_value is not None and e.q_value<=.2 and e.indicator>=d),dt)
