import { AppError } from '../../errors.ts';
import { serviceAddress } from '../../setting-addresses.ts';
import { urlAdvice } from '../profiles/profile-names.ts';

/** The address that the environment names; undefined when it names none. @throws AppError invalid */
export function namedUrl(env: NodeJS.ProcessEnv): string | undefined {
  for (const name of ['TOOLHOST_URL', 'BASE_URL']) {
    const text = env[name]?.trim();
    if (!text) continue;
    const address = serviceAddress(text);
    if (address === undefined)
      throw new AppError('invalid', `${name}: found ${text.replace(/\/\/.*@/, '//…@')}; ${urlAdvice}`);
    return address;
  }
  return undefined;
}

/** Address of the service that this environment would start. @throws AppError invalid */
export function environmentUrl(env: NodeJS.ProcessEnv): string {
  return namedUrl(env) ?? `http://127.0.0.1:${env.PORT?.trim() || '8080'}`;
}
