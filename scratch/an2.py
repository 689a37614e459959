import sys; sys.argv=[sys.argv[0],'/tmp/me/demo','/tmp/me/dm','100','1']
exec(open('scratch/disc.py').read().split('if __name__')[0])
for N,K in [(64,12),(64,8),(64,6),(128,12),(256,12)]:
    bs,dt=go(DiscoveryConfig(intervention=InterventionConfig(contexts=N,finalists=K)))
    show(f"N{N} K{K} accepted",sc(bs,lambda b,e:e.accepted),dt)
    show(f"   cause only",sc(bs,lambda b,e:e.verdict=="cause"),dt)
    for a in (.1,.2): show(f"   q<{a} d.1",sc(bs,lambda b,e:e.q_value is not None and e.q_value<=a and (e.indicator or 0)>=.1),dt)
    show(f"   finalists",sc(bs,lambda b,e:e.q_value is not None),dt)
    import pickle; pickle.dump(bs,open(f'/tmp/me/bs{N}_{K}.pkl','wb'))
