import { createContext, useContext } from 'react';
import type { Session } from '../api-types.ts';
import { queryKeys } from '../query-keys.ts';
import { useOperationQuery } from '../use-operation-query.ts';

const Context = createContext<Session | undefined>(undefined);

export const SessionProvider = Context.Provider;

export function useSessionQuery() {
  return useOperationQuery(queryKeys.session, 'getSession', {}, { staleTime: 0, refetchOnWindowFocus: 'always' });
}

/** Returns the session of the signed-in user. @throws Error outside the frame */
export function useSession(): Session {
  const session = useContext(Context);
  if (!session) throw new Error('useSession was called outside the frame');
  return session;
}

export function useCanEdit(): boolean {
  return useSession().workspace.role !== 'viewer';
}

export function useIsOwner(): boolean {
  return useSession().workspace.role === 'owner';
}
