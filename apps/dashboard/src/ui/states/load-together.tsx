import { useIsFetching, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import { Loading } from './loading.tsx';

/** First requests of queries, whose data will change the layout. */
const firstRequests = {
  predicate: ({ state }: { state: { data: unknown; error: unknown } }) =>
    state.data === undefined && state.error === null,
};

/** Shows its content when all of it has loaded, so that no part moves another one. */
export function LoadTogether({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const count = useIsFetching(firstRequests);
  const [isShown, setShown] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each change of the count asks again
  useEffect(() => {
    // Rendered data may have started another request, which the count does not contain yet.
    if (client.isFetching(firstRequests) === 0) setShown(true);
  }, [client, count]);
  return (
    <>
      {!isShown && <Loading />}
      <div hidden={!isShown}>{children}</div>
    </>
  );
}
