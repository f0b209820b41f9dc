# The main job in a container: docker build -t fixfirst . && docker run --rm -v "$PWD/runs:/data/runs" fixfirst
FROM python:3.11-slim
WORKDIR /opt/fixfirst
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt .
# Machine code for this processor is made when the image is built, by a search too small to tell anything; on another one it is made again.
ENV XDG_CACHE_HOME=/opt/cache
RUN fixfirst search --total-episodes 1000 --measure-episodes 10 --selection-episodes 10 --workers 1 --quiet --out /tmp/warm && \
    rm -rf /tmp/warm && chmod -R a+rwX /opt/cache
WORKDIR /data
ENTRYPOINT ["fixfirst"]
CMD ["search", "--red-agent", "b_line"]
