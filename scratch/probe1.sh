export PYTHONPATH=src PYTHONUNBUFFERED=1
python3 -c "
import torch,inspect;print(torch.__version__,torch.cuda.get_device_name())
from torch.nn.attention import varlen;print(inspect.signature(varlen.varlen_attn))
import time
a=torch.randn(8192,8192,device='cuda',dtype=torch.bfloat16);b=a.clone()
for _ in range(3): a@b
torch.cuda.synchronize();t=time.time()
for _ in range(20): a@b
torch.cuda.synchronize();print('ceiling TFLOPs',20*2*8192**3/(time.time()-t)/1e12)
"
python3 -c "
from oscar_causal.data.synthetic import preset, write_fleet
write_fleet(preset('demo'),0,'/tmp/demo',workers=2)
"
i=0
for kw in '{"steps":400,"batch_tokens":8192}' '{"steps":400,"batch_tokens":8192,"learning_rate":0.006}' '{"steps":800,"batch_tokens":4096,"learning_rate":0.004}' '{"steps":400,"batch_tokens":8192,"label_weight":4}' '{"steps":400,"batch_tokens":8192,"size":{"width":64,"heads":4,"hidden":160},"learning_rate":0.006}' ; do
 (CUDA_VISIBLE_DEVICES="" OMP_NUM_THREADS=2 timeout 330 python3 scratch/sweep.py /tmp/demo "$kw" "cpu$i $kw" > $OUT/cpu$i.log 2>&1) &
 i=$((i+1))
done
python3 - <<'P'
import time; t=time.time()
from oscar_causal.data.synthetic import preset, write_fleet
if __name__=="__main__":
    r=write_fleet(preset('hard',sequences=100000),0,'/tmp/hard',workers=4)
    print("hard made",time.time()-t,r["bayes"],r["presence_oracle"],r["labels"])
P
timeout 200 python3 scratch/sweep.py /tmp/hard '{"preset":"base","steps":600,"threads":4}' base 
timeout 120 python3 scratch/sweep.py /tmp/hard '{"preset":"paper","steps":60,"threads":4,"evaluations":1}' paper
wait
tail -n 3 $OUT/cpu*.log
