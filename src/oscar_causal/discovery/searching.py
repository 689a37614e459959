"""forward then backward."""
from __future__ import annotations
import numpy as np
from oscar_causal.discovery.pools import Pool
from oscar_causal.discovery.reading import IMAGINED, cross_fold_likelihood
from scipy.special import betaln
LIMIT=16
MARGIN=2.0
TRIED=4
class Search:
    def __init__(self,pool):
        self.pool=pool; self.known={}
        n=len(pool.atoms)
        self.bits=(pool.codes[:,None]>>np.arange(n,dtype=np.uint64)&np.uint64(1)).astype(bool)
    def parted(self,chosen):
        mask=np.uint64(sum(1<<k for k in chosen))
        codes,which=np.unique(self.pool.codes&mask,return_inverse=True)
        order=np.argsort(which,kind="stable"); starts=np.searchsorted(which[order],np.arange(len(codes)))
        return codes,which,order,starts
    def score(self,chosen):
        key=frozenset(chosen)
        if key not in self.known:
            codes,which,order,starts=self.parted(chosen)
            counts=np.add.reduceat(self.pool.counts.reshape(len(which),-1)[order],starts,axis=0).reshape(-1,*self.pool.counts.shape[1:])
            holds=(codes[:,None]>>np.array(sorted(chosen),np.uint64)&np.uint64(1)).astype(bool)
            self.known[key]=cross_fold_likelihood(holds,counts)
        return self.known[key]
    def gains(self,chosen):
        """surrogate gains of all pool features"""
        codes,which,order,starts=self.parted(chosen)
        tot=self.pool.counts.sum(2)[order]
        whole=np.add.reduceat(tot,starts,axis=0).astype(float)
        mixed=(whole[:,1]>0)&(whole[:,1]<whole[:,0])
        keep=mixed[which[order]]
        order=order[keep]; tot=tot[keep]
        if not len(order): return np.full(len(self.pool.atoms),-np.inf)
        w=which[order]; starts=np.flatnonzero(np.append(True,w[1:]!=w[:-1])); whole=whole[w[starts]]
        bits=self.bits[order]
        ins=np.add.reduceat(tot[:,:,None]*bits[:,None,:],starts,axis=0).astype(float) # S,2,K
        yes=(IMAGINED*whole[:,1]/whole[:,0])[:,None]; no=IMAGINED-yes
        n,k=ins[:,0],ins[:,1]; N,Kk=whole[:,:1],whole[:,1:]
        g=betaln(k+yes,n-k+no)+betaln(Kk-k+yes,N-n-Kk+k+no)-betaln(Kk+yes,N-Kk+no)-betaln(yes,no)
        g[(n==0)|(n==N)]=0
        return g.sum(0)
    def forward(self,chosen):
        chosen=list(chosen); best=self.score(chosen)
        while len(chosen)<LIMIT:
            g=self.gains(chosen); g[chosen]=-np.inf
            tried=[k for k in np.argsort(-g,kind="stable")[:TRIED].tolist() if g[k]>0]
            if not tried: break
            sc=[self.score([*chosen,k]) for k in tried]
            if max(sc)<best+MARGIN: break
            best=max(sc); chosen.append(tried[sc.index(best)])
        return chosen
    def backward(self,chosen):
        chosen=list(chosen); best=self.score(chosen)
        while len(chosen)>1:
            sc=[self.score([c for c in chosen if c!=k]) for k in chosen]
            if max(sc)<best: break
            best=max(sc); chosen.pop(sc.index(best))
        return chosen
