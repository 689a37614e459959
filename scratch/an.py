import sys; sys.argv=[sys.argv[0],'/tmp/me/demo','/tmp/me/dm','100','1']
exec(open('scratch/disc.py').read().split('if __name__')[0])
from oscar_causal.discovery import intervention as I
from oscar_causal.data.batches import encode
enc=encode(ds,m.vocabulary,max_length=512)
why=truth_of(ds,[(ds.sequence_ids[i].as_py(),l) for i in out for l in ds.labels_of(i)])["why"]
def curve_scores(seq,labels,subject):
    L=seq.event_ids.shape[1]
    p=m.label_probs(seq,torch.as_tensor(labels),torch.arange(1,L+1))[0].double().numpy() # (L,Y)
    d=np.abs(np.diff(np.vstack([np.full((1,len(labels)),0.02),p]),axis=0))
    lo=np.log(np.clip(p,1e-4,1-1e-4)/(1-np.clip(p,1e-4,1-1e-4))); dl=np.abs(np.diff(np.vstack([lo[:1],lo]),axis=0))
    s=np.zeros((len(subject.types),len(labels)))
    np.maximum.at(s,subject.owner,dl)
    return s
for n1,r1,pw in [(21,.15,0),(21,.15,1),(16,.15,0),(16,.15,1),(10,.15,1),(4,.15,1),(21,.1,0),(21,.1,1),(32,.1,0),(32,.15,0),(32,.15,1)]:
    rec={};tot={}
    K=12
    for i in out:
        seq=sequence_contexts(enc,i); labels=np.sort(enc.labels[i]).astype(np.int64); sid=ds.sequence_ids[i].as_py()
        sub=I.prepare(m,seq,sequence_id=sid,seed=0,shuffle=True)
        c=len(sub.types); u=Stream(0,sid,"mask").uniforms(n1,c) if 'Stream' in globals() else I.Stream(0,sid,"mask").uniforms(n1,c)
        st=I._stage(m,sub,labels,u,np.full(c,r1),"screen")
        cs=curve_scores(seq,labels,sub)
        for j,l in enumerate(labels):
            tr=why.get((sid,m.vocabulary.labels[l]))
            if not tr: continue
            order=list(I.rank_types(st,j))
            if pw:
                o2=list(np.argsort(-cs[:,j])); merged=[]
                for a,b in zip(order,o2):
                    for z in (a,b):
                        if z not in merged: merged.append(z)
                order=merged
            names=[m.vocabulary.name(int(sub.types[t])) for t in order[:K]]
            k=min(len(tr),5); rec[k]=rec.get(k,0)+len(tr&set(names)); tot[k]=tot.get(k,0)+len(tr)
    print(n1,r1,pw,{k:round(rec[k]/tot[k],3) for k in sorted(tot)},round(sum(rec.values())/sum(tot.values()),3),flush=True)
