/* Layers that need not run: what nothing reads, what another layer makes, what changes nothing, what another takes along, transposes that the calls around them take along. */
#include "model_lines.h"

typedef struct {
    const char *values, *nodes, *spares; /* "a unread, b repeated" */
} example;

static void check(const example *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        subject s = infer(rows[i].values, rows[i].nodes);
        bz_spares found;
        bz_buf out = {0};
        bz_spares_find(s.layers, &found);
        for (int k = 0; k < found.n; k++) {
            assert_int_equal(found.match[k].n, 1);
            bz_buf_printf(&out, "%s%s %s", k ? ", " : "", s.layers->layer[found.match[k].layer[0]].name,
                          found.match[k].pattern);
        }
        if (strcmp(bz_buf_text(&out), rows[i].spares) != 0)
            fail_msg("%s\ngives    %s\nexpected %s", rows[i].nodes, bz_buf_text(&out), rows[i].spares);
        bz_buf_free(&out);
        end(&s);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof *(rows))

static void what_no_result_needs_is_unread(void **state)
{
    (void)state;
    static const example ROWS[] = {
        {"X=2x3", "Relu X y", ""},
        {"X=2x3", "Tanh X a; Exp a b; Relu X y", "a unread, b unread"},
        {"X=2x3", "Tanh X a; Exp a b; Relu a y", "b unread"},
        {"X=2x3 s=3,2", "Reshape X,s a; Relu X y", ""}, /* a view costs nothing */
    };
    CHECK(ROWS);
}

static void what_another_layer_makes_is_repeated(void **state)
{
    (void)state;
    static const example ROWS[] = {
        {"X=2x3", "Tanh X a; Tanh X b; Add a,b y", "b repeated"},
        {"X=2x3", "Tanh X a; Exp X b; Add a,b y", ""},
        {"X=2x3 Z=2x3", "Tanh X a; Tanh Z b; Add a,b y", ""},
        /* what is made of it, too, through views, and whatever of the same is made later */
        {"X=2x3 s=3,2", "Tanh X a; Tanh X b; Reshape a,s c; Reshape b,s d; Exp c e; Exp d f; Sub e,f y",
         "b repeated, f repeated"},
        {"X=2x3", "Tanh X a; Tanh X b; Tanh X c; Sum a,b,c y", "b repeated, c repeated"},
        /* attributes and constants count, by their values where they are few */
        {"X=2x3", "Elu{alpha=0.5} X a; Elu{alpha=0.25} X b; Add a,b y", ""},
        {"X=2x3", "Elu{alpha=0.5} X a; Elu{alpha=0.5} X b; Add a,b y", "b repeated"},
        {"X=2x3 p=2.0 q=2.0 r=3.0", "Pow X,p a; Pow X,q b; Pow X,r c; Sum a,b,c y", "b repeated"},
        {"X=2x3 p=1.0,2.0,3.0 q=1.0,2.0,3.0 r=1.0,2.0,4.0", "Mul X,p a; Mul X,q b; Mul X,r c; Sum a,b,c y",
         "b repeated"},
        /* weights count by what they are: the file may not have them */
        {"X=2x3 w=3x4 v=3x4", "MatMul X,w a; MatMul X,v b; Add a,b y", ""},
        {"X=2x3 w=3x4", "MatMul X,w a; MatMul X,w b; Add a,b y", "b repeated"},
        /* chance makes another result each time */
        {"X=2x3", "Bernoulli X a; Bernoulli X b; Add a,b y", ""},
        /* operands in another order are others */
        {"X=2x3 Z=2x3", "Sub X,Z a; Sub Z,X b; Mul a,b y", ""},
        /* the first one is not read by itself, but the repeated one is */
        {"X=2x3", "Tanh X a; Exp a c; Tanh X b; Relu b y", "a unread, c unread"},
    };
    CHECK(ROWS);
}

static void what_gives_back_a_value_is_unchanged(void **state)
{
    (void)state;
    static const example ROWS[] = {
        /* numbers that change nothing, on the side where they do */
        {"X=2x3 n=0.0", "Add X,n a; Add n,a b; Sub b,n y", "a unchanged, b unchanged, y unchanged"},
        {"X=2x3 n=0.0", "Sub n,X y", ""},
        {"X=2x3 n=1.0", "Mul X,n a; Mul n,a b; Div b,n c; Pow c,n y",
         "a unchanged, b unchanged, c unchanged, y unchanged"},
        {"X=2x3 n=1.0", "Div n,X a; Pow n,a b; Add b,n y", ""},
        {"X=2x3 n=0.0,0.0,0.0 m=0.0,0.0,1.0", "Add X,n a; Add a,m y", "a unchanged"},
        /* weights that the file may not have */
        {"X=2x3 n=3", "Add X,n y", ""},
        /* zeros that make it larger */
        {"X=2x1 n=0.0,0.0", "Add X,n y", ""},
        /* steps that undo each other, and choices between equals */
        {"X=2x3", "Neg X a; Neg a b; Exp b y", "a unchanged, b unchanged"},
        {"X=2x3", "Neg X a; Neg a b; Add a,b y", "b unchanged"},
        {"X=2x3", "Exp X a; Exp a y", ""},
        {"X=2x3 Z=2x3", "Max X,X a; Min Z,Z b; Max a,b y", "a unchanged, b unchanged"},
        /* types that hold every number of the first, and others: 11 is double, 10 half, 1 single precision */
        {"X=2x3", "Cast{to=11} X a; Cast{to=1} a b; Exp b y", "a unchanged, b unchanged"},
        {"X=2x3", "Cast{to=10} X a; Cast{to=1} a y", ""},
        /* limits that values keep by themselves */
        {"X=2x3", "Relu X a; Relu a b; Abs b c; Elu c y", "b unchanged, c unchanged, y unchanged"},
        {"X=2x3", "Sigmoid X a; Relu a b; LeakyRelu X c; Relu c d; Add b,d y", "b unchanged"},
        {"X=2x3 n=0.0 o=1.0 h=0.5", "Sigmoid X a; Clip a,n,o b; Clip b,n,h c; Clip c,n,o y",
         "b unchanged, y unchanged"},
        {"X=2x3 o=1.0 t=2.0", "Sigmoid X a; Clip a,o,t b; Clip b,o,o y", "y unchanged"},
        {"X=2x3 h=0.5 o=1.0", "Tanh X a; Relu a b; Clip b,h,o c; Clip b,o,o d; Add c,d y", ""},
        {"X=2x3 Z=2x3", "Relu X a; Relu Z b; Add a,b c; Relu c d; Sub a,b e; Relu e f; Add d,f y", "d unchanged"},
        {"X=2x3 Z=2x3", "Relu X a; Relu Z b; Concat{axis=0} a,b c; Transpose{perm=1x0} c d; Relu d y", "y unchanged"},
        {"X=2x3 Z=2x3", "Relu X a; Concat{axis=0} a,Z c; Relu c y", ""},
        {"X=2x3", "Floor X a; Round a b; Ceil b y", "b unchanged, y unchanged"},
        {"X=2x3 h=0.5", "Floor X a; Mul a,h b; Floor b y", ""},
        /* shapes that stay */
        {"X=1x2x1x1", "GlobalAveragePool X y", "y unchanged"},
        {"X=1x2x3x3", "GlobalAveragePool X y", ""},
        /* parts put together in their order, and taken apart again */
        {"X=4x3", "Split{num_outputs=2} X a,b; Concat{axis=0} a,b y", "a b unchanged, y unchanged"},
        {"X=4x3", "Split{num_outputs=2} X a,b; Concat{axis=0} b,a y", ""},
        {"X=4x3", "Split{num_outputs=2} X a,b; Concat{axis=1} a,b y", ""},
        {"X=4x4", "Split{num_outputs=2} X a,b; Concat{axis=1} a,b c; Relu c y", ""},
        {"X=4x3", "Split{num_outputs=2} X a,b; Concat{axis=0} a,b,b y", ""},
        {"X=6x3", "Split{num_outputs=3} X a,b,c; Concat{axis=0} a,c,b y", ""},
        {"X=2x3 Z=2x3", "Concat{axis=0} X,Z c; Split{num_outputs=2} c a,b; Sub a,b y", "c unchanged, a b unchanged"},
        {"X=2x3 Z=2x3", "Concat{axis=1} X,Z c; Split{axis=0;num_outputs=2} c a,b; Sub a,b y", ""},
        {"X=3x3 Z=1x3", "Concat{axis=0} X,Z c; Split{num_outputs=2} c a,b; Sub a,b y", ""},
        /* through views of the same shape */
        {"X=2x3 s=2,3", "Relu X a; Reshape a,s b; Identity b c; Relu c y", "y unchanged"},
    };
    CHECK(ROWS);
}

#define CHANNELS "X=1x4x5x6 w=4x4x1x1 b=4 s=4x1x1 t=4x1x1 r=5x1 h=0.5 "
#define ROWS_OF  "X=2x3 w=3x3 b=3 s=3 t=3 c=2x1 h=0.5 "

static void what_another_layer_takes_along_is_folded(void **state)
{
    (void)state;
    static const example ROWS[] = {
        /* into the weights; into the bias where there is one, of the call or of a sum */
        {CHANNELS, "Conv X,w c; Mul c,s y", "y folded"},
        {CHANNELS, "Conv X,w c; Div c,s d; Mul h,d e; Neg e y", "d folded, e folded, y folded"},
        {CHANNELS, "Conv X,w c; Div s,c y", ""},
        {CHANNELS, "Conv X,w c; Add c,s y", ""},
        {CHANNELS, "Conv X,w,b c; Add c,s d; Sub d,h y", "d folded, y folded"},
        {CHANNELS, "Conv X,w c; Add c,s d; Mul d,t e; Add e,s y", "e folded, y folded"},
        {CHANNELS, "Conv X,w,b c; BatchNormalization c,b,b,b,b d; Relu d y", "d folded"},
        {CHANNELS, "Conv X,w c; BatchNormalization c,b,b,b,b d; BatchNormalization d,b,b,b,b y", "y folded"},
        {ROWS_OF, "Gemm X,w,b g; Mul g,s d; Add d,t y", "d folded, y folded"},
        {ROWS_OF, "MatMul X,w g; Mul g,s d; Add d,t e; Add e,t y", "d folded, y folded"},
        /* not by another axis, nor where somebody else reads it, or it is no longer a factor */
        {CHANNELS, "Conv X,w c; Mul c,r y", ""},
        {ROWS_OF, "MatMul X,w g; Mul g,c y", ""},
        {CHANNELS, "Conv X,w c; Mul c,s d; Add c,d y", ""},
        {ROWS_OF, "MatMul X,w g; Relu g d; Mul d,s y", ""},
        /* into a product that has no weights goes a number */
        {"X=2x3 Z=3x3 s=3 h=0.5", "MatMul X,Z g; Mul g,h d; Mul d,s y", "d folded"},
        {"X=2x3 Z=3x3 s=3 h=0.5", "Mul X,h a; Mul Z,s b; MatMul a,b y", "a folded"},
        /* into the product behind it, if every reader is one */
        {ROWS_OF, "Mul X,s a; MatMul a,w y", "a folded"},
        {ROWS_OF, "Mul X,c a; MatMul a,w y", ""},
        {ROWS_OF, "Add X,s a; MatMul a,w y", ""},
        {ROWS_OF "v=3x3", "Mul X,s a; MatMul a,w d; MatMul a,v e; Add d,e y", "a folded"},
        {ROWS_OF, "Mul X,s a; MatMul a,w d; Add a,d y", ""},
        {CHANNELS, "Mul X,s a; Conv a,w y", "a folded"},
        {CHANNELS, "Mul X,r a; Conv a,w y", ""},
        /* past transposes, by the axis that moves along */
        {"X=1x4x5x6 w=4x4x1x1 s=4", "Conv X,w c; Transpose{perm=0x2x3x1} c d; Mul d,s y", "d transpose, y folded"},
        {"X=1x4x5x6 w=4x4x1x1 s=5", "Conv X,w c; Transpose{perm=0x1x3x2} c d; Mul d,s y", ""},
        {"X=3x2 w=3x3 s=3x1 t=2", "Mul X,s a; Transpose{perm=1x0} a b; MatMul b,w y", "a folded, b transpose"},
        {"X=3x2 w=3x3 s=3x1 t=2", "Mul X,t a; Transpose{perm=1x0} a b; MatMul b,w y", "b transpose"},
        /* numbers also past other views */
        {"X=4x3 w=3x3 v=2,2,3 h=0.5 s=3", "MatMul X,w a; Reshape a,v b; Mul b,h c; Mul c,s y", "c folded"},
        /* in a row: one factor and one summand remain */
        {ROWS_OF, "Mul X,s a; Add a,t p; Mul p,s q; Add q,h y", "q folded, y folded"},
        {ROWS_OF, "Mul X,s a; Mul a,c y", ""},
        /* limits */
        {"X=2x3 n=0.0 o=6.0", "LeakyRelu X a; Relu a b; Clip b,n,o y", "y folded"},
        {"X=2x3 n=0.0", "Relu X b; Clip b,n y", "y unchanged"},
    };
    CHECK(ROWS);
}

static void padding_goes_into_windows(void **state)
{
    (void)state;
    static const example ROWS[] = {
        {"X=1x4x5x6 w=4x4x3x3 p=0,0,1,1,0,0,1,1", "Pad X,p a; Conv a,w y", "a folded"},
        {"X=1x4x5x6 w=4x4x3x3 p=0,0,1,0,0,0,1,0 q=0,0,0,1,0,0,0,1", "Pad X,p a; Pad a,q b; Conv b,w y",
         "a folded, b folded"},
        {"X=1x4x5x6 w=4x4x3x3 p=0,0,1,1,0,0,1,1 h=0.5", "Pad X,p,h a; Conv a,w y", ""},
        {"X=1x3x5x6 w=4x4x3x3 p=0,1,0,0,0,0,0,0", "Pad X,p a; Conv a,w y", ""},
        {"X=1x4x5x6 w=4x4x3x3 p=0,0,1,1,0,0,1,1", "Pad{mode=reflect} X,p a; Conv a,w y", ""},
        {"X=1x4x5x6 w=4x4x3x3 p=0,0,1,1,0,0,1,1", "Pad X,p a; Conv a,w b; GlobalMaxPool a c; Add b,c y", ""},
    };
    CHECK(ROWS);
}

/* Weights, of which no other place wants an element, and their moments lie as their readers want them. W: the weight, V: its moment. */
#define WEIGHTS                                                                                                        \
    "W=4x5 V=4x5 X=3x5 O=3x6 P=3x4 G=4x5 H=2x5 K=2x5 L=4x2 R=1 T=1 zero=0, one=1, two=2, three=3, four=4, five=5, "    \
    "s00=0,0 s20=2,0 s10=1,0 s03=0,3 e=4,5 a01=0,1 a10=1,0 n1=1,1 n2=1,2 w=4,5 "
#define STEP(gradient)                                                                                                 \
    "ai.onnx.preview.training:Momentum{mode=standard;alpha=0.5;beta=0.5;norm_coefficient=0.0} R,T,W," gradient         \
    ",V u,m; "
#define ROWS_FROM(from, to, name) "Slice W," from "," to ",zero,one " name "; "
#define COLUMNS(from, to, name)   "Slice W," from "," to ",one,one " name "; "
#define BACK(dy, start, name)     "com.microsoft:SliceGrad " dy ",w," start ",e,a01,n1 " name "; "
#define SWAPPED                   ROWS_FROM("zero", "two", "a") ROWS_FROM("two", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c y"

static void weights_lie_as_they_are_read(void **state)
{
    (void)state;
    static const example ROWS[] = {
        {WEIGHTS, STEP("G") SWAPPED, "a arranged, b arranged, c arranged"},
        /* without a step they are no weights; what another reads as it is, is none that may move */
        {WEIGHTS, SWAPPED, ""},
        {WEIGHTS,
         STEP("G") ROWS_FROM("zero", "two", "a") ROWS_FROM(
             "two", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c z; Gemm{transB=1} X,W k; Add z,k y",
         ""},
        /* rows of which one is wanted twice; none of them is left out */
        {WEIGHTS,
         STEP("G") ROWS_FROM("zero", "three", "a")
             ROWS_FROM("two", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c y",
         ""},
        {WEIGHTS,
         STEP("G") ROWS_FROM("zero", "three", "a")
             ROWS_FROM("three", "four", "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c y",
         "a arranged, b arranged, c arranged"},
        {WEIGHTS, STEP("G") "Slice W,zero,four,zero,two a; Gemm{transB=1} X,a y", "a arranged"},
        {WEIGHTS,
         STEP("G") "Slice W,zero,two,zero,two a; " ROWS_FROM("two", "four",
                                                             "b") "Concat{axis=0} b,a c; Gemm{transB=1} X,c y",
         ""},
        /* by columns, and by both */
        {WEIGHTS,
         STEP("G") COLUMNS("zero", "three", "a")
             COLUMNS("three", "five", "b") "Concat{axis=1} b,a c; Gemm{transB=1} X,c y",
         "a arranged, b arranged, c arranged"},
        {WEIGHTS,
         STEP("G") COLUMNS("zero", "three", "a")
             COLUMNS("two", "five", "b") "Concat{axis=1} b,a c; Gemm{transB=1} O,c y",
         ""},
        {WEIGHTS,
         STEP("G") ROWS_FROM("zero", "two", "a")
             COLUMNS("two", "five", "b") "Gemm{transB=1} X,a c; MatMul P,b d; Concat{axis=1} c,d y",
         ""},
        /* gradients of parts that lie apart; of parts that overlap; with steps; with axes in another order */
        {WEIGHTS, BACK("H", "s00", "p") BACK("K", "s20", "q") "Add p,q g; " STEP("g") "Relu X y",
         "p arranged, q arranged, g arranged"},
        {WEIGHTS, BACK("H", "s20", "p") BACK("K", "s00", "q") "Add p,q g; " STEP("g") "Relu X y",
         "p arranged, q arranged, g arranged"},
        {WEIGHTS, BACK("H", "s00", "p") BACK("K", "s10", "q") "Add p,q g; " STEP("g") "Relu X y", ""},
        {WEIGHTS, BACK("H", "s00", "p") BACK("L", "s03", "q") "Add p,q g; " STEP("g") "Relu X y", ""},
        {WEIGHTS, BACK("H", "s00", "p") "Sub p,G g; " STEP("g") "Relu X y", ""},
        {WEIGHTS, BACK("H", "s00", "p") BACK("K", "s20", "q") "Sub p,q g; " STEP("g") "Relu X y", ""},
        {WEIGHTS, BACK("H", "s00", "p") "com.microsoft:SliceGrad K,w,s20,e,a10,n1 q; Add p,q g; " STEP("g") "Relu X y",
         ""},
        {WEIGHTS, BACK("H", "s00", "p") "com.microsoft:SliceGrad K,w,s20,e,a01,n2 q; Add p,q g; " STEP("g") "Relu X y",
         ""},
        {WEIGHTS, BACK("H", "s00", "p") "Add p,p g; " STEP("g") "Relu X y", ""},
        {WEIGHTS, BACK("H", "s00", "p") BACK("K", "s20", "q") "Add p,q g; " STEP("g") "Relu g y", ""},
        {WEIGHTS, "Concat{axis=0} H,K g; " STEP("g") "Relu X y", "g arranged"},
        {WEIGHTS, "Concat{axis=0} H,H g; " STEP("g") "Relu X y", ""},
        {WEIGHTS, "Concat{axis=0} H,K g; " STEP("g") "Relu g y", ""},
        {WEIGHTS, "Concat{axis=0} H,K g; " STEP("g") "Transpose{perm=1x0} g y", ""},
    };
    CHECK(ROWS);
}

#define IMAGE "X=1x4x5x6 w=4x4x1x1 "
#define LAST  "perm=0x2x3x1"
#define FIRST "perm=0x3x1x2"

static void transposes_cancel(void **state)
{
    (void)state;
    static const example ROWS[] = {
        /* between what has to be as written nothing goes */
        {"X=1x4x5x6", "Transpose{" LAST "} X y", ""},
        {"X=1x4x5x6 s=4,30", "Transpose{" LAST "} X a; Reshape a,s y", ""},
        /* a pair, whatever works by element between them */
        {"X=1x4x5x6", "Transpose{" LAST "} X a; Transpose{" FIRST "} a y", "a transpose, y transpose"},
        {"X=1x4x5x6", "Transpose{" LAST "} X a; Relu a b; Tanh b c; Transpose{" FIRST "} c y",
         "a transpose, y transpose"},
        {"X=1x4x5x6", "Transpose{" LAST "} X a; Relu a b; Softmax b c; Transpose{" FIRST "} c y",
         "a transpose, y transpose"},
        {"X=1x4x5x6 b=4", "Transpose{" LAST "} X a; Add a,b c; Transpose{" FIRST "} c y", "a transpose, y transpose"},
        {"X=1x4x5x6 Z=1x5x6x4", "Transpose{" LAST "} X a; Add a,Z c; Transpose{" FIRST "} c d; Relu d y", ""},
        /* two that are one */
        {"X=1x4x5x6", "Transpose{" LAST "} X a; Transpose{" LAST "} a y", "a transpose"},
        /* a branch that wants it turned: the one turn is needed, and the way back not */
        {"X=1x4x5x6 s=4,30",
         "Transpose{" LAST "} X a; Reshape a,s b; Transpose{" FIRST "} a c; Reshape c,s d; Add b,d y", "c transpose"},
    };
    CHECK(ROWS);
}

static void calls_take_transposes_along(void **state)
{
    (void)state;
    static const example ROWS[] = {
        /* images with the channels last are as good for convolutions and pools; other orders are not */
        {"X=1x5x6x4 w=4x4x1x1", "Transpose{" FIRST "} X a; Conv a,w b; Transpose{" LAST "} b y",
         "a transpose, y transpose"},
        {"X=1x5x4x6 w=4x4x1x1", "Transpose{perm=0x2x1x3} X a; Conv a,w y", ""},
        {"X=1x5x6x4", "Transpose{" FIRST "} X a; GlobalAveragePool a y", "a transpose"},
        /* a product reads what has one of its last two axes without gaps */
        {"X=2x5x3x4 Z=2x5x3x4", "Transpose{perm=0x1x3x2} Z a; MatMul X,a y", "a transpose"},
        {"X=2x5x3x4 w=4x7", "Transpose{perm=0x2x1x3} X a; MatMul a,w y", "a transpose"},
        {"X=2x5x3x4 w=2x7", "Transpose{perm=3x1x2x0} X a; MatMul a,w y", ""},
        {"X=4x2x3x5 w=4x7", "Transpose{perm=1x2x3x0} X a; MatMul a,w y", "a transpose"},
        /* heads of attention: the result of the second product goes back */
        {"X=2x5x3x4 w=4x4", "Transpose{perm=0x2x1x3} X a; MatMul a,w b; Transpose{perm=0x2x1x3} b y",
         "a transpose, y transpose"},
        /* and is read by something that wants it as it is written */
        {"X=2x5x3x4 w=4x4 s=10,12",
         "Transpose{perm=0x2x1x3} X a; MatMul a,w b; Reshape a,s c; Reshape b,s d; Add c,d y", ""},
        /* an equation has letters for whatever order */
        {"X=2x5x3x4 Z=3x2x4x5", "Transpose{perm=2x0x3x1} X a; Einsum{equation=abcd,abcd->abc} a,Z y", "a transpose"},
        /* axes of length 1 lie anywhere */
        {"X=4x1x3x5 w=3x7", "Transpose{perm=1x0x3x2} X a; MatMul a,w y", "a transpose"},
    };
    CHECK(ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_result_needs_is_unread),
        cmocka_unit_test(what_another_layer_makes_is_repeated),
        cmocka_unit_test(what_gives_back_a_value_is_unchanged),
        cmocka_unit_test(what_another_layer_takes_along_is_folded),
        cmocka_unit_test(padding_goes_into_windows),
        cmocka_unit_test(weights_lie_as_they_are_read),
        cmocka_unit_test(transposes_cancel),
        cmocka_unit_test(calls_take_transposes_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
