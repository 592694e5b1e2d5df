import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Loading } from './loading.tsx';
import { ProblemAlert } from './problem-alert.tsx';

type Props<Data> = { query: UseQueryResult<Data>; loading?: ReactNode; children: (data: Data) => ReactNode };

/** Renders a query's data, loading state, or error. */
export function Loaded<Data>({ query, loading, children }: Props<Data>) {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <ProblemAlert error={query.error} onRetry={() => query.refetch()} />;
  return loading ?? <Loading />;
}
