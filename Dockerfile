FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PORT=8080 BRIDGE_DATA_DIR=/var/lib/letta-tool-bridge

RUN useradd --system --uid 10001 --no-create-home bridge \
    && install -d -o bridge -g bridge "$BRIDGE_DATA_DIR"

WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt
COPY app.py gunicorn.conf.py letta-bridge ./
COPY bridge bridge
COPY templates templates
# Otherwise each start would compile the code again.
RUN python -m compileall -q app.py bridge

USER 10001
VOLUME /var/lib/letta-tool-bridge
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=4)"]
# A container is stopped with SIGTERM, on which gunicorn ends its workers in order.
CMD ["gunicorn", "app:create_app()"]
