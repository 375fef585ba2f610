"""Processes of both kinds, an environment of one's own, temporary files and asyncio."""
import asyncio
import multiprocessing
import os
import subprocess
import sys
import tempfile


def double(n):
    return 2 * n


async def echo():
    child = await asyncio.create_subprocess_exec("echo", "async", stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    return out.decode().strip()


def main():
    said = []
    for method in "fork", "spawn":
        with multiprocessing.get_context(method).Pool(2) as pool:
            said.append(str(sum(pool.map(double, [1, 2, 3]))))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        own = os.path.join(folder, "bin", "python")
        said.append(str(subprocess.check_output([own, "-c", "import sys; print(sys.prefix != sys.base_prefix)"], text=True).strip()))
    said.append(asyncio.run(echo()))
    print(*said)


if __name__ == "__main__":
    main()
