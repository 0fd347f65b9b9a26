"""A page in headless Chromium, driven over a pipe: no port, no library."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class Page:
    """Loads a URL; keeps what it complained about and what it asked the network for."""

    def __init__(self, url, dark=False, width=1200, height=900):
        self.folder = tempfile.mkdtemp()
        read, self.out = os.pipe()
        self.back, write = os.pipe()

        def hand_over():  # Chromium reads commands from 3 and writes answers to 4
            os.dup2(os.dup(read), 3)
            os.dup2(os.dup(write), 4)

        self.process = subprocess.Popen(
            [shutil.which('chromium'), '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--remote-debugging-pipe', f'--user-data-dir={self.folder}', '--hide-scrollbars', '--no-first-run',
             f'--window-size={width},{height}', 'about:blank'],
            close_fds=False, preexec_fn=hand_over, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.text, self.number, self.session = b'', 0, None
        self.complaints, self.requests, self.loaded = [], [], False
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(domain + '.enable')
        self.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.loaded = False
        self.call('Page.navigate', url=url)
        end = time.time() + 60
        while not self.loaded and time.time() < end:
            self.receive()

    def receive(self):
        while b'\0' not in self.text:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError('Chromium ended')
            self.text += more
        line, self.text = self.text.split(b'\0', 1)
        message = json.loads(line)
        method, p = message.get('method'), message.get('params', {})
        if method == 'Page.loadEventFired':
            self.loaded = True
        elif method == 'Runtime.exceptionThrown':
            self.complaints.append(p['exceptionDetails'].get('exception', {}).get('description', str(p)))
        elif method == 'Runtime.consoleAPICalled' and p['type'] in ('error', 'warning', 'assert'):
            self.complaints.append(str(p['args']))
        elif method == 'Log.entryAdded' and p['entry']['level'] in ('error', 'warning'):
            self.complaints.append(p['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(p['request']['url'])
        return message

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        data = json.dumps(message).encode() + b'\0'
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.receive()
            if answer.get('id') == message['id']:
                if 'error' in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer['result']

    def ask(self, expression):
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(str(result['exceptionDetails'].get('exception', {}).get('description')))
        return result['result'].get('value')

    def picture(self, path, whole=True, clip=None):
        options = {'captureBeyondViewport': whole}
        if whole:
            size = self.call('Page.getLayoutMetrics')['cssContentSize']
            options['clip'] = {'x': 0, 'y': 0, 'width': size['width'], 'height': min(size['height'], 16000), 'scale': 1}
        if clip:
            options['clip'] = dict(zip(('x', 'y', 'width', 'height'), clip), scale=1)
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.call('Page.captureScreenshot', **options)['data']))

    def paper(self, path):
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.call('Page.printToPDF', printBackground=True, paperWidth=8.27,
                                               paperHeight=11.69)['data']))

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.out)
        os.close(self.back)
        shutil.rmtree(self.folder, ignore_errors=True)
