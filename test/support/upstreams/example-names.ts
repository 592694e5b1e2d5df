import type { Resolve } from '@toolhost/safe-http/connector';

const addresses: Record<string, string> = { 'files.example': '127.0.0.1', 'private.example.com': '10.0.0.1' };

/** Resolves one name to this machine and one to a private address. All other names do not exist. */
export const resolveExampleNames: Resolve = (hostname, callback) => {
  const address = addresses[hostname];
  if (address) callback(null, [{ address, family: 4 }]);
  else callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
};
