// Load data in a component.
import { useEffect, useState } from "./vendor/preact-htm.js";

// Return [value, error]; the value is undefined until it is there. With `keep`, the first input says
// what is loaded, and the value before stays while a newer version of the same thing is loaded.
export function useLoaded(load, inputs, keep = false) {
  const [state, setState] = useState({ inputs: null });
  useEffect(() => {
    let current = true;
    load().then(
      (value) => current && setState({ inputs, value }),
      (error) => current && setState({ inputs, error }),
    );
    return () => { current = false; };
  }, inputs);
  const known = state.inputs && (keep ? state.inputs.slice(0, 1) : state.inputs);
  const fresh = known && known.every((one, at) => one === inputs[at]);
  return fresh ? [state.value, state.error] : [undefined, undefined];
}
