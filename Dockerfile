# The main job in a container: docker build -t fixfirst . && docker run --rm -v "$PWD/runs:/data/runs" fixfirst
FROM python:3.11-slim
WORKDIR /opt/fixfirst
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt .
# Machine code for this processor is made when the image is built; on another one it is made again.
ENV XDG_CACHE_HOME=/opt/cache
RUN python -c "import numpy as np, fixfirst as ff; e = ff.make_vec(1); e.reset(seed=0); e.step(np.zeros(1, int))" && chmod -R a+rwX /opt/cache
WORKDIR /data
ENTRYPOINT ["fixfirst"]
CMD ["search", "--red-agent", "b_line"]
