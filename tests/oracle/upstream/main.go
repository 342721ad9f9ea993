// Command oracle says what the real upstream kube-scheduler (v1.36.3, default profile, default feature gates) decides
// about the pods of Kubernetes List documents. The Python side is tests/oracle/parity.py; see README.md.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/klog/v2"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

var (
	flagSimulate    = flag.Bool("simulate", false, "schedule all pending pods one after another and print placements")
	flagRunning     = flag.Bool("running", false, "say also what upstream says of every running pod, each taken out first")
	flagBoth        = flag.Bool("both", false, "print verdicts and placements in one object")
	flagBench       = flag.Int("bench", 0, "run the simulate loop `N` times per document and report pods/s")
	flagSample      = flag.Bool("sample", false, "stop looking for nodes once as many fit as kube-scheduler looks for by default (placements only)")
	flagValidate    = flag.Bool("validate", false, "only validate the documents' pods and nodes with the API server's validation")
	flagProfile     = flag.Bool("profile", false, "print the default profile (plugins per extension point, weights) and exit")
	flagAsCreated   = flag.Bool("as-created", false, "pass every pod through API defaulting and the pod strategy's PrepareForCreate (merges (mis)matchLabelKeys into labelSelector) first")
	flagNewSnapshot = flag.Bool("newsnapshot", false, "build the snapshot with cache.NewSnapshot instead of the live cache + UpdateSnapshot (verdict mode only)")
	flagParallelism = flag.Int("parallelism", 16, "scheduler parallelism (upstream default 16)")
	flagVerbose     = flag.Int("v", -1, "klog verbosity to stderr; -1 silences upstream logs")
	flagCheck       = flag.Bool("check", true, "cross-check the per-plugin runs against the framework's own verdicts")
)

const schedName = "default-scheduler"

func handle(raw []byte) (any, error) {
	doc, err := parse(raw)
	if err != nil {
		return nil, err
	}
	switch {
	case *flagValidate:
		return validate(doc), nil
	case *flagBench > 0:
		return bench(doc, *flagBench)
	}
	w, err := newWorld(doc)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if *flagSimulate {
		return w.simulate()
	}
	out := struct {
		Pods     map[string]*podVerdict `json:"pods"`
		Running  map[string]*podVerdict `json:"running,omitempty"`
		Simulate *simResult             `json:"simulate,omitempty"`
		Ignored  map[string]string      `json:"ignored,omitempty"`
	}{map[string]*podVerdict{}, nil, nil, doc.ignored}
	for _, p := range doc.pending {
		out.Pods[podKey(p)] = w.verdict(p)
	}
	if *flagRunning {
		if out.Running, err = w.running(); err != nil {
			return nil, err
		}
	}
	if *flagBoth {
		out.Simulate, err = w.simulate()
	}
	return out, err
}

func printProfile(out io.Writer) error {
	w, err := newWorld(&document{})
	if err != nil {
		return err
	}
	defer w.close()
	names := func(ps []schedulerapi.Plugin) (r []string) {
		for _, p := range ps {
			n := p.Name
			if p.Weight != 0 {
				n = fmt.Sprintf("%s*%d", n, p.Weight)
			}
			r = append(r, n)
		}
		return r
	}
	l := w.list
	for _, e := range []struct {
		n string
		s schedulerapi.PluginSet
	}{{"preEnqueue", l.PreEnqueue}, {"queueSort", l.QueueSort}, {"preFilter", l.PreFilter}, {"filter", l.Filter}, {"postFilter", l.PostFilter}, {"preScore", l.PreScore}, {"score", l.Score}, {"reserve", l.Reserve}, {"preBind", l.PreBind}, {"bind", l.Bind}} {
		fmt.Fprintf(out, "%s: %s\n", e.n, strings.Join(names(e.s.Enabled), " "))
	}
	return nil
}

func main() {
	allowPrivileged()
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: oracle [-running] [-both] | -simulate | -bench N | -validate | -profile [flags] [file...]   (List documents, one per line, or one per file)\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *flagVerbose < 0 {
		klog.SetLogger(klog.Logger{}) // the zero Logger discards
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	} else {
		fs := flag.NewFlagSet("klog", flag.ContinueOnError)
		klog.InitFlags(fs)
		fs.Set("v", fmt.Sprint(*flagVerbose))
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if *flagProfile {
		if err := printProfile(out); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	bad := 0
	one := func(name string, n int, raw []byte) {
		res, err := handle(raw)
		if err != nil {
			bad++
			fmt.Fprintf(os.Stderr, "%s: document %d: %v\n", name, n, err)
			res = map[string]string{"error": err.Error()}
		}
		if err := enc.Encode(res); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Flush()
	}
	stream := func(name string, r io.Reader) {
		// Documents may be one per line or pretty-printed; a JSON decoder takes both.
		dec := json.NewDecoder(bufio.NewReaderSize(r, 1<<20))
		for n := 1; ; n++ {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err == io.EOF {
				return
			} else if err != nil {
				fmt.Fprintf(os.Stderr, "%s: document %d: %v\n", name, n, err)
				bad++
				return
			}
			one(name, n, raw)
		}
	}
	if flag.NArg() == 0 {
		stream("stdin", os.Stdin)
	}
	for _, f := range flag.Args() {
		fh, err := os.Open(f)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		stream(f, fh)
		fh.Close()
	}
	out.Flush()
	if bad > 0 {
		os.Exit(1)
	}
	if inconsistencies > 0 {
		os.Exit(3)
	}
}
