"""one CPU/GPU training: args: dataset json-kwargs tag seconds"""
import sys,time,json,os
sys.path.insert(0,'src')
import torch, numpy as np
from oscar_causal.data.sequences import read_dataset
from oscar_causal.data.vocabulary import build_vocabulary
from oscar_causal.data.batches import encode
from oscar_causal.data.subjects import held_out
from oscar_causal.density import settings
from oscar_causal.density.settings import TrainConfig, preset_config
from oscar_causal.density.transformer import Network
from oscar_causal.density.training import Trainer
from oscar_causal.density.model import OscarModel, length_batches
from oscar_causal.density.quality import assess
ds=read_dataset(sys.argv[1]); kw=json.loads(sys.argv[2]); tag=sys.argv[3]
size=kw.pop("size",None)
if size: settings.SIZES[kw.get("preset","tiny")].update(size)
torch.set_num_threads(int(kw.pop("threads",2)))
cfg=preset_config(kw.pop("preset","tiny"),**kw)
out=held_out(ds.subject_ids,.1 if len(ds)<50000 else 0.03,seed=0)
ins=ds.take(np.flatnonzero(~out)); val=ds.take(np.flatnonzero(out))
voc=build_vocabulary(ins)
tr=encode(ins,voc,max_length=512); va=encode(val,voc,max_length=512)
torch.manual_seed(0)
net=Network(cfg.network(events=voc.size,labels=len(voc.labels),channels=len(ds.channels)))
npar=sum(p.numel() for p in net.parameters())
t0=time.time(); T=Trainer(net,cfg,tr,va,None); log=[]
def on(s,n,f):
    if s in (1,20,100): print(tag,"step",s,round(time.time()-t0,1),f,flush=True)
    if 'held_out_label_loss' in f: log.append((s,round(f['held_out_label_loss'],4),round(time.time()-t0,1))); print(tag,log[-1],round(f['tokens_per_s']),flush=True)
T.fit(on_step=on)
t=time.time()-t0
m=OscarModel(net.eval(),voc,ds.channels,512,15)
q=assess(m,va,evaluated_on="x",fit=True)
print("RESULT",tag,"params",npar,"seconds",round(t,1),"tok/s",round(T.run.tokens/T.run.seconds),"F1 w %.4f macro %.4f micro %.4f"%tuple(q["labels"][k]["f1"] for k in("weighted","macro","micro")),"loss",log[-1][1] if log else None, flush=True)
if torch.cuda.is_available(): print(tag,"peak GiB",torch.cuda.max_memory_allocated()/2**30,flush=True)
