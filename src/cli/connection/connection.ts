import { type Command, InvalidArgumentError, Option } from 'commander';
import { serviceAddress } from '../../setting-addresses.ts';
import { isProfileName, profileAdvice, urlAdvice } from '../profiles/profile-names.ts';

/** Address of the service, and what a command shows there. */
export type ServiceConnection = { url: string; credential: ServiceCredential };

export type ServiceCredential = {
  token: string;
  /** A newer token than the refused one. @throws AppError when there is none */
  renew?: (refused: string) => Promise<string>;
};

export type ConnectionOptions = { url?: string; key?: string; profile?: string };

export function jsonOption(): Option {
  return new Option('--json', 'print JSON for a program to read');
}

export function profileOption(meaning = 'profile to use (default: TOOLHOST_PROFILE, or the current one)'): Option {
  return new Option('--profile <name>', meaning).argParser((name) => {
    if (!isProfileName(name)) throw new InvalidArgumentError(profileAdvice);
    return name;
  });
}

/** Reads the address of a service. @throws InvalidArgumentError, which says what is allowed */
export function serviceUrl(text: string): string {
  const address = serviceAddress(text);
  if (address === undefined) throw new InvalidArgumentError(urlAdvice);
  return address;
}

/** Heading of these options in the help. */
export const connectionGroup = 'Which service, and with which credential:';

/** The options of every command that talks to a running service. */
export function addConnectionOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--url <url>',
        'address of the service (default: TOOLHOST_URL, BASE_URL, that of the profile, or http://127.0.0.1:PORT)',
      )
        .argParser(serviceUrl)
        .helpGroup(connectionGroup),
    )
    .addOption(
      new Option(
        '--key <key>',
        'API key (default: TOOLHOST_API_KEY, which keeps it out of lists of processes, or the login of the profile)',
      ).helpGroup(connectionGroup),
    )
    .addOption(profileOption().helpGroup(connectionGroup))
    .addOption(jsonOption());
}
