// Child processes, workers, files and a server with its client on the loopback device.
const { execFileSync, spawn } = require('node:child_process');
const { Worker, isMainThread, parentPort } = require('node:worker_threads');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');

if (!isMainThread) {
  parentPort.postMessage('worker');
} else {
  main().then((said) => console.log(said.join(' ')));
}

async function main() {
  const said = [execFileSync('echo', ['exec']).toString().trim()];
  said.push(await new Promise((done) => {
    const child = spawn('cat', { stdio: 'pipe' });
    child.stdout.on('data', (data) => done(data.toString()));
    child.stdin.end('spawn');
  }));
  said.push(await new Promise((done) => new Worker(__filename).on('message', done)));
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'work-'));
  fs.writeFileSync(path.join(dir, 'f'), 'file');
  said.push(fs.readFileSync(path.join(dir, 'f')).toString());
  said.push(await new Promise((done, fail) => {
    const server = http.createServer((request, response) => response.end('served'));
    server.listen(0, '127.0.0.1', () => {
      http.get({ port: server.address().port, host: '127.0.0.1' }, (response) => {
        response.on('data', (data) => { server.close(); done(data.toString()); });
      }).on('error', fail);
    });
  }));
  return said;
}
