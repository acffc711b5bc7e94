// Load data in a component.
import { useEffect, useState } from "./vendor/preact-htm.js";

// Return [value, error]; the value is undefined until it is there.
export function useLoaded(load, inputs) {
  const [state, setState] = useState({ inputs: null });
  useEffect(() => {
    let current = true;
    load().then(
      (value) => current && setState({ inputs, value }),
      (error) => current && setState({ inputs, error }),
    );
    return () => { current = false; };
  }, inputs);
  const fresh = state.inputs && state.inputs.every((one, at) => one === inputs[at]);
  return fresh ? [state.value, state.error] : [undefined, undefined];
}
